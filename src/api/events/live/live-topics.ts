import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { InvalidRequestError, NotFoundError } from '../../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import { stackNotFound } from '../../../shared/stacks/stack-errors.ts';
import { assertAuthorized, type CallTarget } from '../../access/authorize-call.ts';
import { OrganizationNotVisibleError } from '../../access/organizations.ts';
import type { Caller } from '../../platform/http/request.ts';
import type { LiveTopic } from './live-hub.ts';
import { createTopicRepository, type FoundRow, type TopicTarget } from './topic-repository.ts';

const updatePattern = /^update:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Pages request `organization:<name>`, `stack:<organization>/<project>/<stack>`, or `update:<id>`. */
interface NamedTopic {
  readonly of: LiveTopic['of'];
  readonly name: string;
  readonly target: TopicTarget;
}

export interface PermittedTopics {
  readonly topics: readonly LiveTopic[];
  /** The organizations whose permissions decide about the topics. */
  readonly organizationIds: ReadonlySet<string>;
}

export class LiveTopics {
  readonly #db: Queryable;

  constructor(db: Queryable) {
    this.#db = db;
  }

  /**
   * `findAt`: the facts that decide about the viewer at a target. Throws InvalidRequestError, and NotFoundError if a topic does not exist
   * or the viewer may not see it.
   */
  async permit(names: readonly string[], findAt: (target: CallTarget) => Promise<Caller>): Promise<PermittedTopics> {
    const named = [...new Set(names)].map(parseTopic);
    const found = await createTopicRepository(this.#db).find(named.map(({ target }) => target));
    const callers = new Map<string, Promise<Caller>>();
    const callerAt = (target: CallTarget): Promise<Caller> => {
      const key = JSON.stringify([target.organization, target.project, target.stack]);
      const caller = callers.get(key) ?? findAt(target);
      callers.set(key, caller);
      return caller;
    };
    const topics: LiveTopic[] = [];
    for (const [index, topic] of named.entries())
      topics.push(await permitOne(topic, found[index] as FoundRow, callerAt));
    const organizationIds = new Set(found.flatMap(({ organizationId }) => organizationId ?? []));
    return { topics, organizationIds };
  }
}

async function permitOne(
  { name, of, target }: NamedTopic,
  found: FoundRow,
  callerAt: (target: CallTarget) => Promise<Caller>,
): Promise<LiveTopic> {
  if (of === 'organization') {
    const at = { organization: target.organization, project: null, stack: null };
    assertAuthorized(await callerAt(at), { kind: 'organization', permission: 'read' }, at);
    if (found.organizationId === null) throw new OrganizationNotVisibleError();
    return { of, name, id: found.organizationId };
  }
  const at = of === 'update' ? found : target;
  const { organization, project, stack } = at;
  const ref = { organization, project, stack };
  const missing = (): NotFoundError =>
    of === 'update'
      ? new NotFoundError('The update does not exist, or you may not see it')
      : stackNotFound(ref as StackRef);
  if (organization === null) throw missing();
  try {
    assertAuthorized(await callerAt(ref), { kind: 'stack', permission: 'read' }, ref);
  } catch (error) {
    throw error instanceof NotFoundError ? missing() : error;
  }
  const id = of === 'update' ? found.updateId : found.stackId;
  if (id === null || found.stackId === null) throw missing();
  return { of, name, id };
}

function parseTopic(name: string): NamedTopic {
  const nothing = { organization: null, project: null, stack: null, updateId: null };
  const updateId = updatePattern.exec(name)?.[1]?.toLowerCase();
  if (updateId !== undefined) return { of: 'update', name, target: { ...nothing, updateId } };
  const [of, path = ''] = name.split(':', 2);
  const [organization = '', project = '', stack = '', more] = path.split('/');
  if (of === 'organization' && organization !== '' && project === '' && stack === '' && more === undefined)
    return { of, name, target: { ...nothing, organization } };
  if (of === 'stack' && organization !== '' && project !== '' && stack !== '' && more === undefined)
    return { of, name, target: { ...nothing, organization, project, stack } };
  throw new InvalidRequestError(
    'A topic must be organization:<name>, stack:<organization>/<project>/<stack> or update:<id>',
  );
}
