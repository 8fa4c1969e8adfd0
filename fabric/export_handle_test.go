package fabric

// ClosedLate is a handle in a parent, closed for the program and to be released.
// remains says how many the parent has of them.
func ClosedLate(free func() error) (release func() error, remains func() int, err error) {
	var parent, child handle
	parent.open("parent", "")
	child.open("child", "", &parent)
	child.hold = func() bool { return true }
	if err := child.close(free); err != nil {
		return nil, nil, err
	}
	if err := parent.close(func() error { return nil }); err != nil {
		return nil, nil, err
	}
	return child.release, func() int { return len(parent.remains) }, nil
}

// HoldGroup keeps a group from being closed until the returned function is called.
func HoldGroup(g *Group) (letGo func() error) {
	var child handle
	child.open("hold", "", &g.handle)
	return func() error { return child.close(func() error { return nil }) }
}
