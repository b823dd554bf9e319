import { ok } from './state.ts';
import type { TestApp } from './test-app.ts';

/** The OpenAPI document, with the schemas of components in place of references to them. */
export async function resolvedDocument(app: Pick<TestApp, 'call'>) {
  const { json } = await ok(app.call('GET', '/api/openapi.json', { accept: null }));
  return { ...json, paths: resolveSchemas(json.paths, json.components.schemas) };
}

/** Replaces references to these schemas, and drops their examples. */
export function resolveSchemas(value: unknown, schemas: Record<string, object>): unknown {
  if (Array.isArray(value)) return value.map((each) => resolveSchemas(each, schemas));
  if (typeof value !== 'object' || value === null) return value;
  const name = /^#\/components\/schemas\/(\w+)$/.exec(String((value as { $ref?: unknown }).$ref))?.[1];
  if (name !== undefined) return resolveSchemas(schemas[name], schemas);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, member]) => key !== 'examples' || !Array.isArray(member))
      .map(([key, member]) => [key, resolveSchemas(member, schemas)]),
  );
}
