// error: VerifyError: expected TensorType, got table<>
program "p" on {0, 1} (%0: table<>@{0}) {
  simp.pcall_static(%0) {parties = {0}} do (%1: table<>) {
    %2 = toy.scale(%1) {by = 2} : table<>
    return
  }
  return
}
