import { expect, test } from '@jest/globals';
import { appRouter } from '../../src/api/router.ts';
import { listUnbounded } from '../support/input-bounds.ts';
import { resolvedDocument } from '../support/openapi.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();

test('every text and every list in an input of a procedure has a maximum', () => {
  const procedures = appRouter._def.procedures as unknown as Record<
    string,
    { readonly _def: { readonly inputs: readonly { readonly schema: object }[] } }
  >;
  const unbounded = Object.entries(procedures).flatMap(([name, { _def }]) =>
    _def.inputs.flatMap(({ schema }) => listUnbounded(schema, name)),
  );
  expect(unbounded).toEqual([]);
});

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
}

/**
 * Lists without a maximum in the schema of a body, by the end of their paths, and what bounds them. Texts of bodies are bounded by the size of
 * the whole body, and those of paths and queries by that of the request line: clients are not refused for a long message.
 */
const boundedElsewhere: readonly (readonly [RegExp, string])[] = [
  [/(checkpoint|import|untypedDeployment)\/features \(count\)$/, 'states are streams, with a limit of their own'],
  [/checkpointdelta\/deploymentDelta \(count\)$/, 'the size of a batch'],
  [/journalentries\/entries \(count\)$/, 'the size of a batch, and 10,000 large ones'],
  [/\/tags\/tags \(count\)$/, 'shared/stacks/tags.ts'],
  [/tokens\/scopes \(count\)$/, 'shared/identity/token-scopes.ts'],
  [/jwks\/keys \(count\)$/, 'shared/identity/trust/issuer.ts'],
  [/policies(\[\]\/(rules({})?|scopes))? \(count\)$/, 'shared/identity/trust/trust-definitions.ts'],
  [
    / \/scim\/v2\/.* \(count\)$/,
    'the size of the body, and 1,000 operations: a group has as many members as there are people',
  ],
  [/events\/batch\/events \(count\)$/, 'the size of a batch'],
];

test('every list in the body of a request has a maximum', async () => {
  const paths = (await resolvedDocument(app)).paths as Record<string, Record<string, Operation>>;
  const unbounded = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody }]) =>
      Object.values(requestBody?.content ?? {})
        .flatMap(({ schema }) => listUnbounded(schema, `${method.toUpperCase()} ${path}`))
        .filter((each) => each.endsWith('(count)')),
    ),
  );
  for (const [pattern] of boundedElsewhere) expect(unbounded.some((each) => pattern.test(each))).toBe(true);
  expect(unbounded.filter((each) => !boundedElsewhere.some(([pattern]) => pattern.test(each)))).toEqual([]);
});
