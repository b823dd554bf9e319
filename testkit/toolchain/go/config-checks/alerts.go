package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
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
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}))
	if len(errs) > 0 {
		return errs[0]
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 90 * time.Second})
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

type sample struct {
	storage.Series
}

func queryable(each fireCase) storage.Queryable {
	find := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := []storage.Series{}
		for _, one := range each.Series {
			names := labels.FromMap(one.Labels)
			if matchesAll(names, matchers) {
				found = append(found, storage.NewListSeries(names, samplesOf(one)))
			}
		}
		return storage.NewMockSeriesSet(found...)
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
