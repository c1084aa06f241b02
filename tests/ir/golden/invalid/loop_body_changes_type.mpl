// error: VerifyError: the body changes the state: it is (i64[]@{0, 1}), the body gives (f64[]@{0, 1})
program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %1 = simp.while_loop(%0) {verify_uniform = true} cond (%2: i64[]@{0, 1}) {
    %3 = simp.constant() {parties = {0, 1}, value = dense<bool[]>[true]} : bool[]@{0, 1}
    return %3
  } body (%5: i64[]@{0, 1}) {
    %6 = simp.constant() {parties = {0, 1}, value = dense<f64[]>[1.0]} : f64[]@{0, 1}
    return %6
  } : i64[]@{0, 1}
  return %1
}
