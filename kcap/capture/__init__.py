"""From capture files to packets: pcap and pcapng in any order of bytes, compressed or not, one file or a set, and back."""
