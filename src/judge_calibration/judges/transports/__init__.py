"""The roads to a judge: each takes the canonical request and gives a reply, or says why there is none."""
