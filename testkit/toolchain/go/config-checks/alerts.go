package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// One value of a series a minute, from minute 0 on.
type series struct {
	Labels map[string]string `json:"labels"`
	Values []float64         `json:"values"`
}

type fireCase struct {
	Series []series `json:"series"`
	// The minute at which the alerts are looked at.
	At int `json:"at"`
}

// Prints a list of names of alerts for each case in the input: those whose expression has a result in every minute of their `for`.
func fireAlerts(file string) error {
	var cases []fireCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		return err
	}
	language := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, language, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return errs[0]
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000,
		Timeout:    time.Minute,
		// A value holds until the next minute.
		LookbackDelta: 59 * time.Second,
		Parser:        language,
	})
	fired := make([][]string, len(cases))
	for number, each := range cases {
		fired[number] = []string{}
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				fires, err := firesIn(engine, each, rule)
				if err != nil {
					return err
				}
				if fires {
					fired[number] = append(fired[number], rule.Alert)
				}
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(fired)
}

func firesIn(engine *promql.Engine, each fireCase, rule rulefmt.Rule) (bool, error) {
	first := each.At - int(time.Duration(rule.For).Minutes())
	for minute := max(first, 0); minute <= each.At; minute++ {
		query, err := engine.NewInstantQuery(context.Background(), queryable(each), nil, rule.Expr, at(minute))
		if err != nil {
			return false, err
		}
		result := query.Exec(context.Background())
		if result.Err != nil {
			return false, result.Err
		}
		vector, err := result.Vector()
		if err != nil {
			return false, err
		}
		if len(vector) == 0 {
			return false, nil
		}
	}
	return true, nil
}

func at(minute int) time.Time {
	return time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
}

func queryable(each fireCase) storage.Queryable {
	find := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &seriesSet{next: -1}
		for _, one := range each.Series {
			names := labels.FromMap(one.Labels)
			if matchesAll(names, matchers) {
				found.all = append(found.all, promql.NewStorageSeries(promql.Series{Metric: names, Floats: pointsOf(one)}))
			}
		}
		return found
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: find}}
}

func matchesAll(names labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(names.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

func pointsOf(one series) []promql.FPoint {
	points := make([]promql.FPoint, len(one.Values))
	for minute, value := range one.Values {
		points[minute] = promql.FPoint{T: at(minute).UnixMilli(), F: value}
	}
	return points
}

type seriesSet struct {
	all  []storage.Series
	next int
}

func (set *seriesSet) Next() bool {
	set.next++
	return set.next < len(set.all)
}

func (set *seriesSet) At() storage.Series                { return set.all[set.next] }
func (set *seriesSet) Err() error                        { return nil }
func (set *seriesSet) Warnings() annotations.Annotations { return nil }
