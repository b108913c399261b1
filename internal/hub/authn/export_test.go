package authn

// Apply compiles a rule and asks it about claims.
func Apply(r Rule, said map[string]any) (Identity, bool, error) {
	c, err := r.compile()
	if err != nil {
		return Identity{}, false, err
	}
	g, ok := c.apply(said)
	return Identity{Team: g.team, Project: g.project, Role: g.role}, ok, nil
}
