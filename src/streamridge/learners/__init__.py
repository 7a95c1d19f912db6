"""The paper's three algorithms (rolling, online, lazy descent), and what they share."""
