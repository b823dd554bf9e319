package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

//go:embed schema.json
var schema string

const providerVersion = "1.0.0"

// lookEvery is how often a delay looks whether it is still wanted.
const lookEvery = 50 * time.Millisecond

type provider struct {
	pulumirpc.UnimplementedResourceProviderServer
	cloud     cloud
	cancelled context.Context
	cancel    context.CancelFunc
}

func newProvider(dir string) *provider {
	cancelled, cancel := context.WithCancel(context.Background())
	return &provider{cloud: cloud{dir: dir}, cancelled: cancelled, cancel: cancel}
}

func (p *provider) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: providerVersion}, nil
}

func (p *provider) GetSchema(context.Context, *pulumirpc.GetSchemaRequest) (*pulumirpc.GetSchemaResponse, error) {
	return &pulumirpc.GetSchemaResponse{Schema: schema}, nil
}

func (p *provider) CheckConfig(_ context.Context, r *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: r.GetNews()}, nil
}

func (p *provider) DiffConfig(context.Context, *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	return &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE}, nil
}

func (p *provider) Configure(context.Context, *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	if p.cloud.dir == "" {
		return nil, errors.New("HOLDFAST_TEST_CLOUD is not set")
	}
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, SupportsPreview: true}, nil
}

// Cancel is what the first SIGINT leads to. Operations run on unless control.json says abortOnCancel.
func (p *provider) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	p.cancel()
	return &emptypb.Empty{}, nil
}

func (p *provider) Check(_ context.Context, r *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: r.GetNews()}, nil
}

func (p *provider) Diff(_ context.Context, r *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	olds, news := propertiesOf(r.GetOldInputs()), propertiesOf(r.GetNews())
	answer := &pulumirpc.DiffResponse{
		Changes:             pulumirpc.DiffResponse_DIFF_NONE,
		DeleteBeforeReplace: news.flag("deleteBeforeReplace"),
		DetailedDiff:        map[string]*pulumirpc.PropertyDiff{},
		HasDetailedDiff:     true,
	}
	for _, key := range changedKeys(olds, news) {
		kind := pulumirpc.PropertyDiff_UPDATE
		if _, present := olds[key]; !present {
			kind = pulumirpc.PropertyDiff_ADD
		} else if _, present := news[key]; !present {
			kind = pulumirpc.PropertyDiff_DELETE
		}
		if key == "replaceOn" {
			kind++ // Each kind is followed by its twin that replaces.
			answer.Replaces = append(answer.Replaces, key)
		}
		answer.Changes = pulumirpc.DiffResponse_DIFF_SOME
		answer.Diffs = append(answer.Diffs, key)
		answer.DetailedDiff[key] = &pulumirpc.PropertyDiff{Kind: kind, InputDiff: true}
	}
	return answer, nil
}

func (p *provider) Create(_ context.Context, r *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	inputs := propertiesOf(r.GetProperties())
	if r.GetPreview() {
		return &pulumirpc.CreateResponse{Properties: previewOutputs(inputs).toStruct()}, nil
	}
	made := &object{Name: nameOf(r.GetUrn())}
	t := target{op: "create", name: made.Name, value: inputs.text("value")}
	partial := inputs.flag("partialCreate")
	err := p.operate(t, inputs, func(c control) error {
		if inputs.flag("failCreate") || t.in(c.FailCreate) {
			return told(t)
		}
		partial = partial || t.in(c.PartialCreate)
		id, err := p.cloud.newID(made.Name)
		if err != nil {
			return err
		}
		made.ID, made.Initialised = id, !partial
		return p.store(made, inputs)
	})
	if err != nil {
		return nil, err
	}
	state := outputs(inputs, made).toStruct()
	if partial {
		return nil, initFailed(made.ID, state, r.GetProperties())
	}
	return &pulumirpc.CreateResponse{Id: made.ID, Properties: state}, nil
}

func (p *provider) Update(_ context.Context, r *pulumirpc.UpdateRequest) (*pulumirpc.UpdateResponse, error) {
	inputs := propertiesOf(r.GetNews())
	if r.GetPreview() {
		return &pulumirpc.UpdateResponse{Properties: previewOutputs(inputs).toStruct()}, nil
	}
	t := target{op: "update", name: nameOf(r.GetUrn()), id: r.GetId(), value: inputs.text("value")}
	var found *object
	err := p.operate(t, inputs, func(c control) (err error) {
		if inputs.flag("failUpdate") || t.in(c.FailUpdate) {
			return told(t)
		}
		if found, err = p.cloud.get(t.id); err != nil {
			return err
		}
		if found == nil {
			return fmt.Errorf("holdfast test: %s does not exist", t.id)
		}
		found.Initialised = true
		return p.store(found, inputs)
	})
	if err != nil {
		return nil, err
	}
	return &pulumirpc.UpdateResponse{Properties: outputs(inputs, found).toStruct()}, nil
}

func (p *provider) Delete(_ context.Context, r *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	olds := propertiesOf(r.GetProperties())
	t := target{op: "delete", name: nameOf(r.GetUrn()), id: r.GetId(), value: olds.text("value")}
	err := p.operate(t, olds, func(c control) error {
		if olds.flag("failDelete") || t.in(c.FailDelete) {
			return told(t)
		}
		return p.cloud.remove(t.id)
	})
	return &emptypb.Empty{}, err
}

func (p *provider) Read(_ context.Context, r *pulumirpc.ReadRequest) (*pulumirpc.ReadResponse, error) {
	inputs := propertiesOf(r.GetInputs())
	t := target{op: "read", name: nameOf(r.GetUrn()), id: r.GetId(), value: inputs.text("value")}
	var found *object
	err := p.operate(t, properties{}, func(c control) (err error) {
		if t.in(c.FailRead) {
			return told(t)
		}
		found, err = p.cloud.get(t.id)
		return err
	})
	if err != nil || found == nil {
		return &pulumirpc.ReadResponse{}, err
	}
	reflect(inputs, found)
	return &pulumirpc.ReadResponse{
		Id: t.id, Inputs: inputs.toStruct(), Properties: outputs(inputs, found).toStruct(),
	}, nil
}

// operate wraps every operation: marker, delay, effect, second delay. A kill in the first delay finds nothing done,
// a kill in the second (slowAfterMs) finds the work done and the engine not told.
func (p *provider) operate(t target, inputs properties, effect func(control) error) error {
	c, err := p.cloud.control()
	if err != nil {
		return err
	}
	if err := errors.Join(p.cloud.log(t, "start"), p.cloud.markStarted(t)); err != nil {
		return err
	}
	own := time.Duration(inputs.number("slowMs")) * time.Millisecond
	err = p.wait(t, c, func(c control) time.Duration { return max(t.delay(c.SlowMs), own) })
	if err == nil {
		err = effect(c)
	}
	if err == nil {
		err = p.wait(t, c, func(c control) time.Duration { return t.delay(c.SlowAfterMs) })
	}
	if err != nil {
		return errors.Join(err, p.cloud.log(t, "failed"))
	}
	return p.cloud.log(t, "done")
}

// wait ends sooner when the test sets a shorter delay meanwhile.
func (p *provider) wait(t target, c control, delay func(control) time.Duration) error {
	var stop <-chan struct{}
	if c.AbortOnCancel {
		stop = p.cancelled.Done()
	}
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for begun := time.Now(); time.Since(begun) < delay(c); {
		select {
		case <-stop:
			return fmt.Errorf("holdfast test: %s of %s was cancelled", t.op, t.name)
		case <-ticks.C:
		}
		var err error
		if c, err = p.cloud.control(); err != nil {
			return err
		}
	}
	return nil
}

func (p *provider) store(o *object, inputs properties) error {
	o.Value, o.ReplaceOn, o.SecretValue = inputs.text("value"), inputs.text("replaceOn"), inputs.text("secretValue")
	o.Size = inputs.number("size")
	o.Revision++
	return p.cloud.put(o)
}

// reflect moves what the object really holds into the inputs, which makes drift visible to the engine. An empty field
// that the program never set stays unset.
func reflect(inputs properties, o *object) {
	for key, live := range map[string]string{"value": o.Value, "replaceOn": o.ReplaceOn, "secretValue": o.SecretValue} {
		if _, set := inputs[key]; set || live != "" {
			inputs.setKeeping(key, structpb.NewStringValue(live))
		}
	}
	if _, set := inputs["size"]; set || o.Size != 0 {
		inputs.setKeeping("size", structpb.NewNumberValue(o.Size))
	}
}

func outputs(inputs properties, o *object) properties {
	all := propertiesOf(inputs.toStruct())
	all["secretEcho"] = secret(structpb.NewStringValue(o.SecretValue))
	all["blob"] = structpb.NewStringValue(blob(o.Name, int(o.Size)))
	all["revision"] = structpb.NewNumberValue(float64(o.Revision))
	return all
}

func previewOutputs(inputs properties) properties {
	all := propertiesOf(inputs.toStruct())
	for _, key := range []string{"secretEcho", "blob", "revision"} {
		all[key] = structpb.NewStringValue(unknownText)
	}
	return all
}

// initFailed tells the engine that the object exists but did not come up: it is saved with initErrors.
func initFailed(id string, state, inputs *structpb.Struct) error {
	failed, err := status.New(codes.Unknown, "holdfast test: initialisation told to fail").WithDetails(
		&pulumirpc.ErrorResourceInitFailed{
			Id: id, Properties: state, Inputs: inputs, Reasons: []string{"holdfast test: initialisation told to fail"},
		})
	if err != nil {
		return err
	}
	return failed.Err()
}

func told(t target) error { return fmt.Errorf("holdfast test: %s of %s told to fail", t.op, t.name) }

func nameOf(urn string) string {
	_, rest, _ := strings.Cut(urn, "::")
	parts := strings.SplitN(rest, "::", 3)
	return parts[len(parts)-1]
}
