program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  %1 = simp.constant() {parties = {0, 1}, value = dense<bool[]>[true]} : bool[]@{0, 1}
  %4 = simp.uniform_cond(%1, %0) {verify_uniform = true} then (%2: bool[]@{0, 1}) {
    return %2
  } else (%3: bool[]@{0, 1}) {
    return %3
  } : bool[]@{0, 1}
  %7 = simp.uniform_cond(%4, %1) {verify_uniform = true} then (%5: bool[]@{0, 1}) {
    return %5
  } else (%6: bool[]@{0, 1}) {
    return %6
  } : bool[]@{0, 1}
  %10 = simp.uniform_cond(%7, %0) {verify_uniform = true} then (%8: bool[]@{0, 1}) {
    return %8
  } else (%9: bool[]@{0, 1}) {
    return %9
  } : bool[]@{0, 1}
  return %10
}

program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  %1 = simp.constant() {parties = {0, 1}, value = dense<bool[]>[true]} : bool[]@{0, 1}
  %4 = simp.uniform_cond(%1, %0) {verify_uniform = false} then (%2: bool[]@{0, 1}) {
    return %2
  } else (%3: bool[]@{0, 1}) {
    return %3
  } : bool[]@{0, 1}
  %7 = simp.uniform_cond(%4, %1) {verify_uniform = true} then (%5: bool[]@{0, 1}) {
    return %5
  } else (%6: bool[]@{0, 1}) {
    return %6
  } : bool[]@{0, 1}
  %10 = simp.uniform_cond(%7, %0) {verify_uniform = false} then (%8: bool[]@{0, 1}) {
    return %8
  } else (%9: bool[]@{0, 1}) {
    return %9
  } : bool[]@{0, 1}
  return %10
}
