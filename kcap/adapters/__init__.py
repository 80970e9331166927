"""Adapters for other packet libraries: they convert packets of scapy and dpkt to kcap's, and back."""
