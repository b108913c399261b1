package dream

// StopAt lets do decide at every step of a change set whether it ends there.
func (d *Dreamer) StopAt(do func(step string) error) { d.step = do }
