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
		stored := storedOf(each.Series)
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				if rule.Record != "" {
					recorded, err := record(engine, stored, rule, each.At)
					if err != nil {
						return err
					}
					stored = append(stored, recorded...)
					continue
				}
				fires, err := firesIn(engine, stored, rule, each.At)
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

// Evaluates a recording rule in each minute. Rules use only the series of earlier ones.
func record(engine *promql.Engine, stored []promql.Series, rule rulefmt.Rule, until int) ([]promql.Series, error) {
	recorded := map[string]*promql.Series{}
	order := []string{}
	for minute := 0; minute <= until; minute++ {
		vector, err := evaluate(engine, stored, rule.Expr, minute)
		if err != nil {
			return nil, err
		}
		for _, sample := range vector {
			names := labels.NewBuilder(sample.Metric).Set(labels.MetricName, rule.Record)
			for name, value := range rule.Labels {
				names.Set(name, value)
			}
			metric := names.Labels()
			key := metric.String()
			if recorded[key] == nil {
				recorded[key] = &promql.Series{Metric: metric}
				order = append(order, key)
			}
			point := promql.FPoint{T: at(minute).UnixMilli(), F: sample.F}
			recorded[key].Floats = append(recorded[key].Floats, point)
		}
	}
	all := make([]promql.Series, len(order))
	for number, key := range order {
		all[number] = *recorded[key]
	}
	return all, nil
}

func firesIn(engine *promql.Engine, stored []promql.Series, rule rulefmt.Rule, until int) (bool, error) {
	first := until - int(time.Duration(rule.For).Minutes())
	for minute := max(first, 0); minute <= until; minute++ {
		vector, err := evaluate(engine, stored, rule.Expr, minute)
		if err != nil || len(vector) == 0 {
			return false, err
		}
	}
	return true, nil
}

func evaluate(engine *promql.Engine, stored []promql.Series, expression string, minute int) (promql.Vector, error) {
	query, err := engine.NewInstantQuery(context.Background(), queryable(stored), nil, expression, at(minute))
	if err != nil {
		return nil, err
	}
	result := query.Exec(context.Background())
	if result.Err != nil {
		return nil, result.Err
	}
	return result.Vector()
}

func at(minute int) time.Time {
	return time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
}

func queryable(stored []promql.Series) storage.Queryable {
	find := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &seriesSet{next: -1}
		for _, one := range stored {
			if matchesAll(one.Metric, matchers) {
				found.all = append(found.all, promql.NewStorageSeries(one))
			}
		}
		return found
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: find}}
}

func storedOf(all []series) []promql.Series {
	stored := make([]promql.Series, len(all))
	for number, one := range all {
		stored[number] = promql.Series{Metric: labels.FromMap(one.Labels), Floats: pointsOf(one)}
	}
	return stored
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
