import { expect, test } from '@jest/globals';
import { viewResource } from '../../../shared/search/resource-facts.ts';
import { canonicalOf } from './canonical-resource.ts';

const inStack = (stack: string, more: object = {}) =>
  viewResource(
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

test('stack-specific values do not make resources differ', async () => {
  const [one, two] = [await inStack('dev'), await inStack('prod')];
  expect(await canonicalOf(one, false)).toEqual(await canonicalOf(two, false));
  expect((await canonicalOf(one, true)).digest).not.toBe((await canonicalOf(two, true)).digest);
  for (const more of [{ protect: true }, { inputs: { size: 2 } }])
    expect((await canonicalOf(await inStack('prod', more), false)).digest).not.toBe(
      (await canonicalOf(one, false)).digest,
    );
});
