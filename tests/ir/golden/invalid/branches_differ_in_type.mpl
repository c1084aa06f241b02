// error: VerifyError: the branches differ: then gives (i64[]@{0}), else gives (f64[]@{0})
program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  %1 = simp.uniform_cond(%0) {verify_uniform = true} then () {
    %2 = simp.constant() {parties = {0}, value = dense<i64[]>[1]} : i64[]@{0}
    return %2
  } else () {
    %3 = simp.constant() {parties = {0}, value = dense<f64[]>[1.0]} : f64[]@{0}
    return %3
  } : i64[]@{0}
  return %1
}
