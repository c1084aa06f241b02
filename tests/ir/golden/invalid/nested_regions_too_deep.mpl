// error: ParseError: nested deeper than 100
program "p" on {0, 1} () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
func.call() {name = "f"} body () {
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
return
}
  return
}
