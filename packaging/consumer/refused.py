"""A program with a mistake in each line marked "refused". Type checkers find exactly those."""

import streamridge as sr

started = sr.Forecaster.start("roads.csv")
misspelt = sr.Forecastr()  # refused
sr.Forecaster.start("roads.csv", stepz=5)  # refused
sr.Forecaster.start("roads.csv", train_size="many")  # refused
sr.replay(started, "roads.csv", gap="jump")  # refused
sr.compare("roads.csv", trainsize=480)  # refused
sr.read("roads.csv", colour="red")  # refused
sr.forecast("roads.csv", horizon=96, stepz=5)  # refused
sr.forecast("roads.csv", horizon=96, warmup="long")  # refused
