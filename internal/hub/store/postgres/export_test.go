package postgres

// For tests of what no caller sees.
var (
	Inventory  = inventory
	SQLChanged = sqlChanged
)
