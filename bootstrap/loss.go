package bootstrap

// gone takes a member out. A cause says that it is lost.
func (s *Server) gone(m *member, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[m.rank] != m {
		return
	}
	delete(s.members, m.rank)
	close(s.changed)
	s.changed = make(chan struct{})
	switch {
	case cause == nil:
		s.config.Logger.Debug("weft: rank left the store", "rank", m.rank)
		s.left[m.rank] = true
	case s.loss == nil && !s.ending:
		s.lose(&LostError{Rank: m.rank, Cause: cause})
	}
	// The server of a rank is for that job only, and ends with it.
	if len(s.members) == 0 && s.loss == nil && s.config.Host == nil {
		clear(s.left)
		s.table.clear()
	}
}

// Lose tells all ranks that one is lost, if they do not know of another. For those
// who know better than its connection, or who know it before there is one.
func (s *Server) Lose(rank int, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loss == nil && !s.ending {
		s.lose(&LostError{Rank: rank, Cause: cause})
	}
}

// Ended tells the server that the process of a rank has ended, and how. If the rank had
// not left in order it is lost, with cause; if it had, nobody can join in its place any
// more. It says whether the rank is the one that is lost.
func (s *Server) Ended(rank int, cause error) (lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.loss != nil || s.ending:
	case s.left[rank] || len(s.members) == 0:
		s.over[rank] = cause
	default:
		s.lose(&LostError{Rank: rank, Cause: cause})
	}
	return s.loss != nil && s.loss.Rank == rank
}

func (s *Server) lose(loss *LostError) {
	s.loss = loss
	s.config.Logger.Warn("weft: rank lost", "rank", loss.Rank, "error", loss.Cause)
	text := bare(loss.Cause)
	notice := frame{kind: kindLost, payload: append(putRank(nil, loss.Rank), text[:min(len(text), mostReason)]...)}
	for _, m := range s.members {
		m.out.put(notice, false)
	}
}
