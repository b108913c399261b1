package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// load reads the shipped Go files of the module at root, whatever their build
// tags. Nested modules, testdata and hidden directories are not part of it.
func load(root string) ([]pkg, error) {
	byDir := map[string]*pkg{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, file, d)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		dir := rel[:max(0, strings.LastIndexByte(rel, '/'))]
		p := byDir[dir]
		if p == nil {
			p = &pkg{dir: dir, imports: map[string]string{}}
			byDir[dir] = p
		}
		return p.add(file, rel)
	})
	if err != nil {
		return nil, fmt.Errorf("read the module at %s: %w", root, err)
	}
	pkgs := make([]pkg, 0, len(byDir))
	for _, p := range byDir {
		pkgs = append(pkgs, *p)
	}
	slices.SortFunc(pkgs, func(a, b pkg) int { return strings.Compare(a.dir, b.dir) })
	return pkgs, nil
}

func skipDir(root, dir string, d fs.DirEntry) error {
	if dir == root {
		return nil
	}
	if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// add notes what the file at path imports and does; rel names it in messages.
func (p *pkg) add(path, rel string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	timeName := ""
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if _, seen := p.imports[imported]; !seen {
			p.imports[imported] = rel
		}
		if imported == "time" {
			timeName = "time"
			if spec.Name != nil {
				timeName = spec.Name.Name
			}
		}
	}
	at := func(n ast.Node) string { return fmt.Sprintf("%s:%d", rel, fset.Position(n.Pos()).Line) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" && !ast.IsGenerated(file) {
				p.inits = append(p.inits, at(n))
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && slices.Contains(clockCalls, n.Sel.Name) {
				p.clock = append(p.clock, at(n))
			}
		}
		return true
	})
	return nil
}
