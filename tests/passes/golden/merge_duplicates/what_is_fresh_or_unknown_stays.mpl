program "p" on {0} (%0: i64[]@{0}) {
  %3, %4 = simp.pcall_static() {parties = {0}} do () {
    %1 = parts.fresh() : f64[]
    %2 = parts.fresh() : f64[]
    return %1, %2
  } : f64[]@{0}, f64[]@{0}
  %6 = simp.pcall_static() {parties = {0}} do () {
    %5 = parts.fresh() : f64[]
    return %5
  } : f64[]@{0}
  %8 = simp.pcall_static() {parties = {0}} do () {
    %7 = parts.fresh() : f64[]
    return %7
  } : f64[]@{0}
  %11 = simp.pcall_static(%0) {parties = {0}} do (%9: i64[]) {
    %10 = parts.note(%9) : i64[]
    return %10
  } : i64[]@{0}
  %14 = simp.pcall_static(%0) {parties = {0}} do (%12: i64[]) {
    %13 = parts.note(%12) : i64[]
    return %13
  } : i64[]@{0}
  return %3, %4, %6, %8, %11, %14
}

program "p" on {0} (%0: i64[]@{0}) {
  %3, %4 = simp.pcall_static() {parties = {0}} do () {
    %1 = parts.fresh() : f64[]
    %2 = parts.fresh() : f64[]
    return %1, %2
  } : f64[]@{0}, f64[]@{0}
  %6 = simp.pcall_static() {parties = {0}} do () {
    %5 = parts.fresh() : f64[]
    return %5
  } : f64[]@{0}
  %8 = simp.pcall_static() {parties = {0}} do () {
    %7 = parts.fresh() : f64[]
    return %7
  } : f64[]@{0}
  %11 = simp.pcall_static(%0) {parties = {0}} do (%9: i64[]) {
    %10 = parts.note(%9) : i64[]
    return %10
  } : i64[]@{0}
  %14 = simp.pcall_static(%0) {parties = {0}} do (%12: i64[]) {
    %13 = parts.note(%12) : i64[]
    return %13
  } : i64[]@{0}
  return %3, %4, %6, %8, %11, %14
}
