// error: VerifyError: unknown attribute 'of'; it has ['by']
program "p" on {0, 1} () {
  %0 = simp.pcall_static() {parties = {0, 1}} do () {
    %1 = toy.rank() : i64[]
    %2 = toy.scale(%1) {by = 2, of = 3} : i64[]
    return %1
  } : i64[]@{0, 1}
  return %0
}
