package hub

// CheckIdentityFile reads an identity file as a hub with client certificates does.
func CheckIdentityFile(name string) error {
	_, err := readTrust(name, true)
	return err
}
