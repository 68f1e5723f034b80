"""From a reply's text to the values it states, or to the reason why it states none. Nothing here raises."""
