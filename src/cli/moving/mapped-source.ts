import { InvalidArgumentError } from 'commander';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { isSegmentName } from '../../shared/stacks/names.ts';
import { tagsIn } from '../../shared/stacks/tags.ts';
import { renameDeployment } from '../../shared/state/deployments/rename-deployment.ts';
import type { StackRename } from '../../shared/state/deployments/urn.ts';
import type { MovingSource, SourceContent, SourceStack, SourceState } from './moving-source.ts';

/** A stack with another name here. Names are `project/stack`. */
export interface StackMapping {
  readonly from: string;
  readonly project: string;
  readonly stack: string;
}

/** Reads `project/stack=project/stack`. Throws InvalidArgumentError. */
export function toMapping(text: string, previous: readonly StackMapping[] = []): StackMapping[] {
  const [from = '', to = '', ...more] = text.split('=');
  const [project = '', stack = '', ...parts] = to.split('/');
  const isValid =
    more.length === 0 && parts.length === 0 && from !== '' && isSegmentName(project) && isSegmentName(stack);
  if (!isValid) throw new InvalidArgumentError('It is not PROJECT/STACK=PROJECT/STACK.');
  return [...previous, { from, project, stack }];
}

export interface UserMapping {
  readonly from: string;
  readonly login: string;
}

/** Reads `name=login`. Throws InvalidArgumentError. */
export function toUserMapping(text: string, previous: readonly UserMapping[] = []): UserMapping[] {
  const at = text.lastIndexOf('=');
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError('It is not NAME=LOGIN.');
  return [...previous, { from: text.slice(0, at), login: text.slice(at + 1) }];
}

/** The source with other names for some of its stacks, in their states as well. */
export function mapSource(source: MovingSource, mappings: readonly StackMapping[]): MovingSource {
  if (mappings.length === 0) return source;
  const byName = new Map(mappings.map((mapping) => [mapping.from, mapping]));
  return {
    location: source.location,
    list: async () => {
      const { stacks, ...others } = await source.list();
      const names = new Set([...stacks, ...(others.gaps ?? [])].map(({ name }) => name));
      const unknown = mappings.find(({ from }) => !names.has(from));
      if (unknown)
        throw new TransferError(`--map: there is no stack ${JSON.stringify(unknown.from)} in ${source.location}`);
      const mapped = stacks.map((stack) => {
        const to = byName.get(stack.name);
        return to ? mapStack(stack, to) : stack;
      });
      return { ...others, stacks: mapped };
    },
    close: () => source.close(),
  };
}

function mapStack(source: SourceStack, { project, stack }: StackMapping): SourceStack {
  return {
    name: source.name,
    project,
    stack,
    open: async () => mapContent(source, await source.open(), project, stack),
  };
}

function mapContent(source: SourceStack, content: SourceContent, project: string, stack: string): SourceContent {
  // The organization in secrets providers is replaced elsewhere, because it is the organization of the source.
  const change: StackRename = {
    from: { organization: '', project: source.project ?? project, stack: source.stack },
    to: { organization: '', project, stack },
  };
  return {
    ...content,
    state: { ...mapState(content.state, change), modifiedAt: content.state.modifiedAt },
    history: content.history.map((entry) => ({ ...entry, state: mapState(entry.state, change) })),
    tags: async () => tagsIn(project, (await content.tags()) as Record<string, string>),
  };
}

function mapState(state: SourceState, change: StackRename): SourceState {
  return {
    ...state,
    document: async function* () {
      yield* (await renameDeployment(() => state.document(), change))();
    },
  };
}
