package notes

import "github.com/memsvc/memsvc/internal/lifecycle/model"

// mask leaves secrets out of all that was said and done, while it is whole.
func (f *Facts) mask(s model.Secrets) {
	for _, said := range [][]said{f.prompts, f.answers} {
		for i := range said {
			said[i].text = s.Masked(said[i].text)
		}
	}
	for i := range f.commands {
		f.commands[i].text = s.Masked(f.commands[i].text)
	}
	for i := range f.errors {
		e := &f.errors[i]
		e.what, e.how = s.Masked(e.what), s.Masked(e.how)
	}
	for _, one := range f.files {
		one.name = s.Masked(one.name)
	}
}
