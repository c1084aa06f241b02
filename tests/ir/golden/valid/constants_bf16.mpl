program "bf16" on {0, 1} () {
  %0 = simp.constant() {parties = {0, 1}, value = dense<bf16[2]>@1e303d019b21e329} : bf16[2]@{0, 1}
  %1 = simp.constant() {parties = {0, 1}, value = dense<bf16[]>@b8811852747cfa36} : bf16[]@{0, 1}
  return %0, %1
}
buffers {
  @1e303d019b21e329 = "wD8AgA=="
  @b8811852747cfa36 = "AEA="
}
