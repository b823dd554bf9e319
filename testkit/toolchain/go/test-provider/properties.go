package main

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// The engine's wire forms of a secret and of a value not yet known (sdk/go/common/resource).
const (
	signatureKey    = "4dabf18193072939515e22adb298388d"
	secretSignature = "1b47061264138c4ac30d75fd1eb44270"
	unknownText     = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
)

type properties map[string]*structpb.Value

func propertiesOf(s *structpb.Struct) properties {
	copied := properties{}
	maps.Copy(copied, s.GetFields())
	return copied
}

func (p properties) toStruct() *structpb.Struct { return &structpb.Struct{Fields: p} }

func (p properties) text(key string) string { return reveal(p[key]).GetStringValue() }

func (p properties) number(key string) float64 { return reveal(p[key]).GetNumberValue() }

func (p properties) flag(key string) bool { return reveal(p[key]).GetBoolValue() }

// setKeeping writes a value and keeps the property secret when it was secret.
func (p properties) setKeeping(key string, value *structpb.Value) {
	if isSecret(p[key]) {
		value = secret(value)
	}
	p[key] = value
}

func isSecret(v *structpb.Value) bool {
	return v.GetStructValue().GetFields()[signatureKey].GetStringValue() == secretSignature
}

func reveal(v *structpb.Value) *structpb.Value {
	for isSecret(v) {
		v = v.GetStructValue().GetFields()["value"]
	}
	return v
}

func secret(v *structpb.Value) *structpb.Value {
	if isSecret(v) {
		return v
	}
	return structpb.NewStructValue(&structpb.Struct{Fields: properties{
		signatureKey: structpb.NewStringValue(secretSignature), "value": v,
	}})
}

func changedKeys(olds, news properties) []string {
	all := propertiesOf(olds.toStruct())
	maps.Copy(all, news)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool {
		old, before := olds[key]
		value, after := news[key]
		return before && after && proto.Equal(reveal(old), reveal(value))
	})
}

// Characters that trip byte offsets, JSON escaping and UTF-16 lengths.
var oddities = []string{"é", "ß", "漢", "😀", "<", ">", "&", "\u2028", "\"", "\\", "\n"}

// blob is always the same text for a name and a size; the size counts bytes of UTF-8.
func blob(name string, size int) string {
	if size <= 0 {
		return ""
	}
	seed := fnv.New64a()
	seed.Write([]byte(name))
	random := rand.New(rand.NewPCG(seed.Sum64(), 1))
	var text strings.Builder
	text.Grow(size)
	for text.Len() < size {
		next := string(rune('a' + random.IntN(26)))
		if random.IntN(16) == 0 {
			next = oddities[random.IntN(len(oddities))]
		}
		if text.Len()+len(next) > size {
			next = "x"
		}
		text.WriteString(next)
	}
	return text.String()
}
