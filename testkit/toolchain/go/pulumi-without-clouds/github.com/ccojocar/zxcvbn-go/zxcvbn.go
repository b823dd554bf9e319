// Package zxcvbn stands in for the measure of passwords, by which `config set` notices a secret that is not marked as
// one: every process of the CLI would read its word lists as it starts.
package zxcvbn

// Strength is what the CLI reads of the result.
type Strength struct {
	Entropy float64
}

// PasswordStrength takes nothing for a password.
func PasswordStrength(string, []string) Strength {
	return Strength{}
}
