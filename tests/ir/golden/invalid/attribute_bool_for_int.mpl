// error: VerifyError: attribute 'by': expected int, got bool
program "p" on {0, 1} () {
  %0 = simp.pcall_static() {parties = {0, 1}} do () {
    %1 = toy.rank() : i64[]
    %2 = toy.scale(%1) {by = true} : i64[]
    return %1
  } : i64[]@{0, 1}
  return %0
}
