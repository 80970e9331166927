"""From packets to ordered stream bytes: link and IP headers, TCP segments, reassembly, connections."""
