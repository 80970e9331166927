"""From capture files to packets and back: pcap and pcapng in either byte order, compressed or not, one file or a set."""
