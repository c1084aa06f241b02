// error: VerifyError: unknown op 'toy.nosuch'
program "p" on {0, 1} () {
  %0 = simp.pcall_static() {parties = {0, 1}} do () {
    %1 = toy.rank() : i64[]
    toy.nosuch()
    return %1
  } : i64[]@{0, 1}
  return %0
}
