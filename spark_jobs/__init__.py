"""Jobs for Apache Spark over captures that outgrow one machine; everything they know comes from kcap. There is none yet."""
