package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sources is what packages cgo and fabric say, and what cgo does.
type sources struct {
	// bound says where each function is claimed: the names of packages and
	// declarations, such as "cgo.GetInfo", cgo's first.
	bound map[string][]string
	// called are the functions that cgo calls.
	called map[string]bool
	// named are the numbers, such as FI_MSG, that cgo names.
	named map[string]bool
}

const mark = "Implements:"

// readSources reads packages cgo and fabric below the root of the repository.
func readSources(root string) (*sources, error) {
	s := &sources{bound: make(map[string][]string), called: make(map[string]bool), named: make(map[string]bool)}
	for _, pkg := range []string{"cgo", "fabric"} {
		names, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if err := s.readGo(pkg, name); err != nil {
				return nil, err
			}
		}
	}
	for _, pattern := range []string{"*.c", "*.h"} {
		names, err := filepath.Glob(filepath.Join(root, "cgo", pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			s.readC(string(text))
		}
	}
	return s, nil
}

// readC notes what C calls and names.
func (s *sources) readC(text string) {
	text = comments.ReplaceAllString(text, " ")
	for _, m := range called.FindAllStringSubmatch(text, -1) {
		s.called[m[1]] = true
	}
	for _, name := range numbered.FindAllString(text, -1) {
		s.named[name] = true
	}
}

// readGo notes what the declarations of a file implement, and what its C and
// its Go call.
func (s *sources) readGo(pkg, name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			s.claim(d.Doc, pkg+"."+nameOfFunc(d))
		case *ast.GenDecl:
			if d.Tok == token.IMPORT && d.Doc != nil {
				s.readC(uncommented(d.Doc))
			}
			for i, spec := range d.Specs {
				doc, name := docOf(spec)
				if doc == nil && i == 0 {
					doc = d.Doc
				}
				s.claim(doc, pkg+"."+name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := call.X.(*ast.Ident); ok && x.Name == "C" {
				s.called[call.Sel.Name], s.named[call.Sel.Name] = true, true
			}
		}
		return true
	})
	return nil
}

// through notes what the inline functions call that are called.
func (s *sources) through(functions []function) {
	for again := true; again; {
		again = false
		for _, f := range functions {
			for _, name := range f.calls {
				if s.called[f.Name] && !s.called[name] {
					s.called[name], again = true, true
				}
			}
		}
	}
}

// claim notes the functions of the lines that begin with the mark.
func (s *sources) claim(doc *ast.CommentGroup, where string) {
	if doc == nil {
		return
	}
	for line := range strings.Lines(doc.Text()) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), mark)
		if !ok {
			continue
		}
		for _, m := range called.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(s.bound[m[1]], where) {
				s.bound[m[1]] = append(s.bound[m[1]], where)
			}
		}
	}
}

// uncommented is the C of the comment before import "C".
func uncommented(doc *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range doc.List {
		text := strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), "/*")
		b.WriteString(strings.TrimSuffix(text, "*/") + "\n")
	}
	return b.String()
}

// nameOfFunc is "Name" or "Receiver.Name".
func nameOfFunc(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if index, ok := receiver.(*ast.IndexExpr); ok {
		receiver = index.X
	}
	if ident, ok := receiver.(*ast.Ident); ok {
		return ident.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

func docOf(spec ast.Spec) (*ast.CommentGroup, string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Doc, s.Name.Name
	case *ast.ValueSpec:
		return s.Doc, s.Names[0].Name
	}
	return nil, ""
}
