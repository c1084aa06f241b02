program "p" on {0, 1} (%0: i64[]@{0, 1}, %1: i64[]@{0, 1}) {
  %2 = simp.constant() {parties = {0, 1}, value = dense<f64[]>[0.0]} : f64[]@{0, 1} at "a.py:1"
  %3 = simp.constant() {parties = {0, 1}, value = dense<f64[]>[-0.0]} : f64[]@{0, 1} at "a.py:2"
  %4 = simp.constant() {parties = {0, 1}, value = dense<f64[]>[0.0]} : f64[]@{0, 1} at "a.py:3"
  %5 = simp.constant() {parties = {0}, value = dense<f64[]>[0.0]} : f64[]@{0} at "a.py:4"
  %9 = simp.pcall_static(%0, %1) {parties = {0}} do (%6: i64[], %7: i64[]) {
    %8 = kit.add(%6, %7) : i64[]
    return %8
  } : i64[]@{0}
  %13 = simp.pcall_static(%0, %1) {parties = {0}} do (%10: i64[], %11: i64[]) {
    %12 = kit.add(%10, %11) : i64[]
    return %12
  } : i64[]@{0}
  %17 = simp.pcall_static(%0, %1) {parties = {0}} do (%14: i64[], %15: i64[]) {
    %16 = kit.add(%15, %14) : i64[]
    return %16
  } : i64[]@{0}
  %21 = simp.pcall_static(%0, %1) {parties = {1}} do (%18: i64[], %19: i64[]) {
    %20 = kit.add(%18, %19) : i64[]
    return %20
  } : i64[]@{1}
  return %2, %3, %4, %5, %9, %13, %17, %21
}

program "p" on {0, 1} (%0: i64[]@{0, 1}, %1: i64[]@{0, 1}) {
  %2 = simp.constant() {parties = {0, 1}, value = dense<f64[]>[0.0]} : f64[]@{0, 1} at "a.py:1"
  %3 = simp.constant() {parties = {0, 1}, value = dense<f64[]>[-0.0]} : f64[]@{0, 1} at "a.py:2"
  %4 = simp.constant() {parties = {0}, value = dense<f64[]>[0.0]} : f64[]@{0} at "a.py:4"
  %8 = simp.pcall_static(%0, %1) {parties = {0}} do (%5: i64[], %6: i64[]) {
    %7 = kit.add(%5, %6) : i64[]
    return %7
  } : i64[]@{0}
  %12 = simp.pcall_static(%0, %1) {parties = {0}} do (%9: i64[], %10: i64[]) {
    %11 = kit.add(%10, %9) : i64[]
    return %11
  } : i64[]@{0}
  %16 = simp.pcall_static(%0, %1) {parties = {1}} do (%13: i64[], %14: i64[]) {
    %15 = kit.add(%13, %14) : i64[]
    return %15
  } : i64[]@{1}
  return %2, %3, %2, %4, %8, %8, %12, %16
}
