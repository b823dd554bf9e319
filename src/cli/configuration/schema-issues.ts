export interface Issue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

/** Turns errors of a schema into one sentence each. For alternatives, only the nearest one is described. */
export function describeIssues(schema: object, errors: readonly SchemaError[]): Issue[] {
  const alternatives = errors
    .filter(({ keyword }) => keyword === 'anyOf')
    .map(({ schemaPath }) => `${schemaPath}/anyOf/`);
  const isInside = ({ schemaPath }: SchemaError): boolean => alternatives.some((each) => schemaPath.startsWith(each));
  return errors
    .filter((error) => error.keyword !== 'boolean')
    .filter((error) => !isInside(error) || error.keyword === 'additionalProperties')
    .filter(
      (error) =>
        error.keyword !== 'anyOf' ||
        !errors.some(
          (each) => each.keyword === 'additionalProperties' && each.schemaPath.startsWith(`${error.schemaPath}/anyOf/`),
        ),
    )
    .flatMap((error) => describe(error, schema, errors))
    .filter(({ path }, at, all) => all.findIndex((each) => each.path.join('/') === path.join('/')) === at);
}

function fieldsAt(schema: object, schemaPath: string): string[] {
  let found: unknown = schema;
  for (const key of schemaPath.split('/').slice(1)) found = (found as Record<string, unknown> | undefined)?.[key];
  return Object.keys((found as { properties?: object } | undefined)?.properties ?? {});
}

function describe(error: SchemaError, schema: object, all: readonly SchemaError[]): Issue[] {
  const { instancePath, keyword, message, params } = error;
  const path = instancePath
    .split('/')
    .slice(1)
    .map((each) => each.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((each) => (/^\d+$/.test(each) ? Number(each) : each));
  const name = path.length === 0 ? 'the document' : path.join('.');
  switch (keyword) {
    case 'additionalProperties': {
      const known = fieldsAt(schema, error.schemaPath);
      return (params as { additionalProperties: string[] }).additionalProperties.map((field) => ({
        path: [...path, field],
        message: `there is no field ${JSON.stringify(field)} here${suggestion(field, known)}`,
      }));
    }
    case 'required':
      return [
        { path, message: `${(params as { requiredProperties: string[] }).requiredProperties.join(', ')} is missing` },
      ];
    case 'enum': {
      const allowed = (params as { allowedValues: unknown[] }).allowedValues.map(String);
      return [{ path, message: `${name} is one of ${allowed.join(', ')}` }];
    }
    case 'const':
      return [{ path, message: `${name} is ${JSON.stringify((params as { allowedValue: unknown }).allowedValue)}` }];
    case 'anyOf': {
      const types = all
        .filter(
          (each) => each.schemaPath.startsWith(`${error.schemaPath}/anyOf/`) && each.instancePath === instancePath,
        )
        .flatMap((each) => ('type' in each.params ? [String(each.params.type)] : []));
      return [
        { path, message: `${name} is not valid${types.length === 0 ? '' : `: ${[...new Set(types)].join(' or ')}`}` },
      ];
    }
    default:
      return [{ path, message: `${name} ${message}` }];
  }
}

export function suggestion(given: string, known: readonly string[]): string {
  const [best] = known
    .map((word) => ({ word, far: distance(given.toLowerCase(), word.toLowerCase()) }))
    .toSorted((one, other) => one.far - other.far);
  return best && best.far <= Math.max(2, given.length / 3) ? `: did you mean ${JSON.stringify(best.word)}?` : '';
}

/** Levenshtein distance. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...one].entries()) {
    const next = [i + 1];
    for (const [j, against] of [...other].entries())
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === against ? 0 : 1)));
    row = next;
  }
  return row.at(-1) ?? 0;
}
