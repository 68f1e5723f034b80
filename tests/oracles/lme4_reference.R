# Fit one model with lme4 and print its variance components and REML criterion as JSON.
# Arguments: data.csv, the random terms separated by commas (pair, pair:judge, ...), fixed (order or none).
suppressPackageStartupMessages({library(lme4); library(jsonlite)})
arguments <- commandArgs(trailingOnly = TRUE)
data <- read.csv(arguments[1])
for (facet in c("pair", "judge", "format", "order")) data[[facet]] <- factor(data[[facet]])
contrasts(data$order) <- contr.sum(nlevels(data$order))
random <- paste0("(1|", strsplit(arguments[2], ",")[[1]], ")")
fixed <- if (arguments[3] == "none") "1" else arguments[3]
model <- as.formula(paste("y ~", fixed, "+", paste(random, collapse = " + ")))
control <- lmerControl(optimizer = "bobyqa", calc.derivs = FALSE,
                       optCtrl = list(rhobeg = 0.2, rhoend = 1e-11, maxfun = 1e6),
                       check.nlev.gtr.1 = "stop")
fit <- suppressMessages(lmer(model, data = data, REML = TRUE, control = control))
# Start again from the answer, with another optimiser too, until lme4 finds nothing better.
tight <- lmerControl(optimizer = "nlminbwrap", calc.derivs = FALSE,
                     optCtrl = list(rel.tol = 1e-15, x.tol = 1e-12, eval.max = 1e5, iter.max = 1e5))
for (round in 1:4) {
  control$optCtrl$rhobeg <- 10^-(round + 1)
  for (how in list(control, tight)) {
    fit <- suppressMessages(lmer(model, data = data, REML = TRUE, control = how,
                                 start = getME(fit, "theta")))
  }
}
components <- as.data.frame(VarCorr(fit))
answer <- as.list(components$vcov)
names(answer) <- ifelse(components$grp == "Residual", "residual", components$grp)
cat(toJSON(list(criterion = as.numeric(REMLcrit(fit)), components = answer,
                lme4 = as.character(packageVersion("lme4")), r = R.version.string),
           auto_unbox = TRUE, digits = NA))
