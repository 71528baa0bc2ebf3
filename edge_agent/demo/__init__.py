"""Demo: labels on a rendered conveyor, a broker, the real agent, and a table of what it reads."""
