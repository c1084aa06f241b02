program "attributes" on {0, 1, 2} () {
  %3 = simp.pcall_static() {parties = {0, 1, 2}} do () {
    %0 = irtest.attrs() {blob = @fb27efcf0d93b823, count = -9223372036854775808, data = dense<f32[2]>[1.0, -0.0], flag = true, kind = f32[2, 3], maybe = none, pair = [], ratio = 1.0, table = dict{}, text = "", who = {}} : i64[]
    %1 = irtest.attrs() {blob = @e3b0c44298fc1c14, count = 18446744073709551615, data = dense<bool[]>[false], flag = false, kind = table<["id", "int64"]>, maybe = 1, pair = [1, 1.0, true], ratio = -inf, table = dict{"" = [dict{"a" = none, "b" = [[]]}], "\"q\"" = {0, 2}, "kind" = i64[], "more" = @fb27efcf0d93b823, "n" = dense<i8[1]>[1]}, text = "line\n \"quoted\" \\ \u20ac \ud83d\ude00", who = {0, 2}} : i64[]
    irtest.any() {value = nan}
    irtest.any() {value = inf}
    irtest.any() {value = -0.0}
    irtest.any() {value = 1e-07}
    irtest.any() {value = 1.5e+300}
    irtest.any() {value = 5e-324}
    irtest.any() {value = true}
    irtest.any() {value = table<>}
    irtest.any() {value = [none, [dense<i64[0]>[], @fb27efcf0d93b823]]}
    irtest.any() {value = "buffers { } return // %0"}
    %2 = toy.scale(%1) {by = -3} : i64[]
    return %2
  } : i64[]@{0, 1, 2}
  return %3
}
buffers {
  @fb27efcf0d93b823 = "AP9oZWxsbw=="
  @e3b0c44298fc1c14 = ""
}
