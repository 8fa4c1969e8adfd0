package operator

// CheckType is Check of a type that tests make up.
var CheckType = check
