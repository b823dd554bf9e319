import type { CatalogForeignKey, CatalogFunction, CatalogTable } from './catalog.ts';
import { type NamedTables, namedTables } from './function-tables.ts';
import { isOfOrganization, places } from './places.ts';

// What Citus 13 refuses by its documents (SQL Support and Workarounds; Creating and Modifying Distributed Objects) and sources
// (commands/foreign_constraint.c, trigger.c and schema_based_sharding.c, executor/multi_executor.c). No package of it can be had to run it.

/** By rule, then by table. */
export type Breaches = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

const tenant = 'organization_id';

/** With rows distributed by `organization_id`, shared tables as reference tables, and tables of the installation on the coordinator. */
export function rowSharding(tables: readonly CatalogTable[]): Breaches {
  const own = tables.filter(({ name }) => isOfOrganization(name));
  const columnOf = (table: CatalogTable) => table.columns.find(({ name }) => name === tenant);
  return {
    'the column is missing': byTable(own, (table) => (columnOf(table) ? [] : [tenant])),
    'the column may be null': byTable(own, (table) => (columnOf(table)?.isNullable ? [tenant] : [])),
    'the column is not a uuid, or generated': byTable(own, (table) => {
      const column = columnOf(table);
      return column && (column.type !== 'uuid' || column.isGenerated) ? [tenant] : [];
    }),
    'an identity is not a bigint': byTable(own, ({ columns }) =>
      columns.filter(({ isIdentity, type }) => isIdentity && type !== 'bigint').map(({ name }) => name),
    ),
    'a unique key lacks the column': byTable(own, ({ uniqueKeys }) =>
      uniqueKeys.filter(({ columns }) => !columns.includes(tenant)).map(({ name }) => name),
    ),
    'a unique key of values, which would mean something else with the column': byTable(own, (table) =>
      table.uniqueKeys
        .filter(({ columns }) => !columns.some((column) => isSurrogate(table, column)))
        .map(({ name }) => name),
    ),
    'a foreign key lacks the column': keysWhere(own, (key) => isOfOrganization(key.references) && !isKeyed(key)),
    'a foreign key clears or changes what it refers to': keysWhere(
      own,
      ({ changesOnUpdate, onDelete, references }) =>
        isOfOrganization(references) && (changesOnUpdate || onDelete === 'set null' || onDelete === 'set default'),
    ),
    ...keysBetweenPlaces(tables),
    'a table has triggers': byTable(
      tables.filter(({ name }) => isOfOrganization(name) || places[name] === 'shared'),
      ({ triggerFunctions }) => triggerFunctions,
    ),
  };
}

/** With a schema for each organization, and all other tables in `public`: shared ones as reference tables. */
export function schemaSharding(tables: readonly CatalogTable[], functions: readonly CatalogFunction[]): Breaches {
  const named = namedTables(
    functions,
    tables.map(({ name }) => name),
  );
  const own = tables.filter(({ name }) => isOfOrganization(name));
  return {
    ...keysBetweenPlaces(tables),
    'a shared table has triggers': byTable(
      tables.filter(({ name }) => places[name] === 'shared'),
      ({ triggerFunctions }) => triggerFunctions,
    ),
    // A trigger runs on the node of its row, which may write nothing elsewhere, and reads reference tables only.
    'a trigger reaches tables of other nodes': byTable(own, ({ triggerFunctions }) =>
      triggerFunctions.flatMap((name) => {
        const { read = [], written = [] } = named.get(name) ?? {};
        const remote = [
          ...written.filter((table) => !isOfOrganization(table)),
          ...read.filter((table) => places[table] === 'installation'),
        ];
        return remote.map((table) => `${name}:${table}`);
      }),
    ),
    'a function names the schema, and tables of organizations': Object.fromEntries(
      functions
        .filter(({ searchPath }) => searchPath !== null)
        .map(({ name }) => [name, touched(named.get(name)).filter(isOfOrganization)] as const)
        .filter(([, found]) => found.length > 0),
    ),
  };
}

function keysBetweenPlaces(tables: readonly CatalogTable[]): Breaches {
  const own = tables.filter(({ name }) => isOfOrganization(name));
  const others = tables.filter(({ name }) => !isOfOrganization(name));
  return {
    'a foreign key to a table of the installation': keysWhere(
      own,
      ({ references }) => places[references] === 'installation',
    ),
    'a foreign key to rows of organizations': keysWhere(others, ({ references }) => isOfOrganization(references)),
  };
}

function touched(named: NamedTables | undefined): string[] {
  return named ? [...named.read, ...named.written].sort() : [];
}

/** Whether the column is at the same place on both sides. */
function isKeyed({ columns, referencedColumns }: CatalogForeignKey): boolean {
  const at = columns.indexOf(tenant);
  return at >= 0 && referencedColumns[at] === tenant;
}

/** Whether the value is unique, or leads to one organization, by the way it is made. */
function isSurrogate({ columns }: CatalogTable, name: string): boolean {
  const column = columns.find((each) => each.name === name);
  if (column === undefined) return false;
  const isNumbered = column.isIdentity || (column.type === 'bigint' && column.hasDefault);
  return column.type === 'uuid' || isNumbered || name === 'organization';
}

function keysWhere(
  tables: readonly CatalogTable[],
  isBreach: (key: CatalogForeignKey) => boolean,
): Readonly<Record<string, readonly string[]>> {
  return byTable(tables, ({ foreignKeys }) => foreignKeys.filter(isBreach).map(({ name }) => name));
}

function byTable(
  tables: readonly CatalogTable[],
  breaches: (table: CatalogTable) => readonly string[],
): Record<string, readonly string[]> {
  return Object.fromEntries(
    tables.map((table) => [table.name, breaches(table)] as const).filter(([, found]) => found.length > 0),
  );
}
