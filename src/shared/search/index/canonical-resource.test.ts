import { expect, test } from '@jest/globals';
import { canonicalOf } from './canonical-resource.ts';
import { ResourceView } from './resource-facts.ts';

const inStack = (stack: string, more: object = {}) =>
  new ResourceView(
    Buffer.from(
      JSON.stringify({
        urn: `urn:pulumi:${stack}::p::a:b:C::c`,
        id: stack,
        parent: `urn:pulumi:${stack}::p::pulumi:pulumi:Stack::p-${stack}`,
        provider: `urn:pulumi:${stack}::p::pulumi:providers:a::default::id-${stack}`,
        inputs: { size: 1 },
        outputs: { arn: stack },
        ...more,
      }),
    ),
  );

test('what is the own of each stack does not tell resources apart', () => {
  const [one, two] = [inStack('dev'), inStack('prod')];
  expect(canonicalOf(one, false)).toEqual(canonicalOf(two, false));
  expect(canonicalOf(one, true).digest).not.toBe(canonicalOf(two, true).digest);
  for (const more of [{ protect: true }, { inputs: { size: 2 } }])
    expect(canonicalOf(inStack('prod', more), false).digest).not.toBe(canonicalOf(one, false).digest);
});
