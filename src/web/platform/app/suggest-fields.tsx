import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ComponentProps, useDeferredValue, useId } from 'react';
import { TextField } from '../ui/field.tsx';
import { trpc } from './trpc.ts';

/** The browser shows the suggestions, for mouse, keyboard and screen readers alike. */
function SuggestField({
  onChange,
  suggestions,
  ...field
}: Omit<ComponentProps<typeof TextField>, 'list' | 'onChange'> & {
  readonly suggestions: readonly string[];
  readonly onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <>
      <TextField {...field} list={id} onChange={({ target }) => onChange(target.value)} />
      <datalist id={id}>
        {suggestions.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

const limit = 12;

interface Props extends Omit<ComponentProps<typeof SuggestField>, 'suggestions' | 'value'> {
  readonly organization: string;
  readonly value: string;
}

const options = { placeholderData: keepPreviousData, retry: false, staleTime: 30_000 } as const;

/** Only members are suggested, even if other users can be named. */
export function LoginField({ organization, ...field }: Props) {
  const text = useDeferredValue(field.value.trim());
  const found = useQuery(trpc.members.list.queryOptions({ organization, text, limit }, options)).data?.items ?? [];
  return <SuggestField {...field} suggestions={found.map(({ login }) => login)} />;
}

export function TeamField({ organization, ...field }: Props) {
  const text = useDeferredValue(field.value.trim());
  const found = useQuery(trpc.teams.list.queryOptions({ organization, text, limit }, options)).data?.items ?? [];
  return <SuggestField {...field} suggestions={found.map(({ name }) => name)} />;
}

/** Ids are copied, so none is suggested. */
export function TokenIdField({ organization: _organization, ...field }: Props) {
  return <SuggestField {...field} suggestions={[]} />;
}

/** A project with stacks that the user may read. */
export function ProjectField({ organization, ...field }: Props) {
  const found = useStacks(organization, useDeferredValue(field.value.trim()));
  return <SuggestField {...field} suggestions={[...new Set(found.map(({ project }) => project))]} />;
}

export function StackField({ organization, project, ...field }: Props & { readonly project: string }) {
  const found = useStacks(organization, `${project}/${useDeferredValue(field.value.trim())}`);
  const own = found.filter((each) => each.project === project);
  return <SuggestField {...field} suggestions={own.map(({ stack }) => stack)} />;
}

/** `project/stack` of a stack that the user may read. */
export function StackPathField({ organization, ...field }: Props) {
  // A pattern is searched by the text before its first star.
  const found = useStacks(organization, useDeferredValue(field.value.trim().replace(/\*.*$/, '')));
  return <SuggestField {...field} suggestions={found.map(({ project, stack }) => `${project}/${stack}`)} />;
}

function useStacks(organization: string, text: string) {
  return useQuery(trpc.stacks.list.queryOptions({ organization, text, limit }, options)).data?.items ?? [];
}

/** The name of a tag of any stack. */
export function TagNameField({ organization, ...field }: Props) {
  return (
    <SuggestField {...field} suggestions={useTags(organization, { text: useDeferredValue(field.value.trim()) })} />
  );
}

/** A value of the tag on any stack. */
export function TagValueField({ organization, tag, ...field }: Props & { readonly tag: string }) {
  const text = useDeferredValue(field.value.trim());
  return <SuggestField {...field} suggestions={useTags(organization, { name: tag, text })} />;
}

/** `name` or `name=value` of a tag. */
export function TagField({ organization, ...field }: Props) {
  const [name = '', ...value] = useDeferredValue(field.value.trim()).split('=');
  const hasName = value.length > 0;
  const found = useTags(organization, hasName ? { name, text: value.join('=') } : { text: name });
  return <SuggestField {...field} suggestions={hasName ? found.map((each) => `${name}=${each}`) : found} />;
}

function useTags(organization: string, { name, text }: { readonly name?: string; readonly text: string }) {
  const query = trpc.stacks.tags.queryOptions(
    { organization, text, limit, ...(name === undefined ? {} : { name }) },
    { ...options, enabled: name !== '' },
  );
  return useQuery(query).data?.items ?? [];
}
