program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  %1 = simp.constant() {parties = {0, 1}, value = dense<bool[]>[true]} : bool[]@{0, 1}
  %6, %7 = simp.while_loop(%1, %1, %0) {verify_uniform = true} cond (%2: bool[]@{0, 1}, %3: bool[]@{0, 1}, %4: bool[]@{0, 1}) {
    return %2
  } body (%5: bool[]@{0, 1}, %8: bool[]@{0, 1}, %9: bool[]@{0, 1}) {
    return %8, %9
  } : bool[]@{0, 1}, bool[]@{0, 1}
  %14, %15 = simp.while_loop(%1, %1) {verify_uniform = true} cond (%10: bool[]@{0, 1}, %11: bool[]@{0, 1}) {
    return %10
  } body (%12: bool[]@{0, 1}, %13: bool[]@{0, 1}) {
    return %13, %12
  } : bool[]@{0, 1}, bool[]@{0, 1}
  return %6, %14
}

program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  %1 = simp.constant() {parties = {0, 1}, value = dense<bool[]>[true]} : bool[]@{0, 1}
  %8, %9 = simp.while_loop(%1, %1, %0) {verify_uniform = true} cond (%2: bool[]@{0, 1}, %3: bool[]@{0, 1}, %4: bool[]@{0, 1}) {
    return %2
  } body (%5: bool[]@{0, 1}, %6: bool[]@{0, 1}, %7: bool[]@{0, 1}) {
    return %6, %7
  } : bool[]@{0, 1}, bool[]@{0, 1}
  %14, %15 = simp.while_loop(%1, %1) {verify_uniform = false} cond (%10: bool[]@{0, 1}, %11: bool[]@{0, 1}) {
    return %10
  } body (%12: bool[]@{0, 1}, %13: bool[]@{0, 1}) {
    return %13, %12
  } : bool[]@{0, 1}, bool[]@{0, 1}
  return %8, %14
}
