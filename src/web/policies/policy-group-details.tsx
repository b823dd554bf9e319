import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { X } from 'lucide-react';
import { useDeferredValue, useId, useState } from 'react';
import { isEditConflict } from '../platform/app/api-error.ts';
import { ManagedDialog } from '../platform/app/managed-dialog.tsx';
import { PartProblem, useProblem } from '../platform/app/problem-pages.tsx';
import type { GroupChange, PolicyGroup, PolicyPack } from '../platform/app/procedure-types.ts';
import { refresh } from '../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { TextField } from '../platform/ui/field.tsx';
import { HaltNote } from '../platform/ui/halt-note.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { EnableForm } from './enable-form.tsx';
import styles from './policies.module.css';
import { policyGroupDetailsTexts } from './texts.ts';

interface DetailsProps {
  readonly organization: string;
  readonly group: PolicyGroup;
  /** The first packs by name. */
  readonly packs: readonly PolicyPack[];
  readonly onMorePacks: (() => void) | null;
  readonly mayManage: boolean;
}

export function PolicyGroupDetails({
  group: { isDefault, name: group },
  mayManage,
  onMorePacks,
  organization,
  packs,
}: DetailsProps) {
  const [isRemoving, setIsRemoving] = useState(false);
  /** The group is declared, or may be, so the change needs a confirmation. */
  const [asked, setAsked] = useState<GroupChange | null>(null);
  // A successful change ends the drafts.
  const [text, setText] = useState('');
  const [tag, setTag] = useState('');
  const change = useMutation(
    trpc.policies.changeGroup.mutationOptions({
      onSuccess: async (_, { addStack, enable }) => {
        if (addStack) setText((typed) => (typed.trim() === `${addStack.project}/${addStack.stack}` ? '' : typed));
        if (enable) setTag((chosen) => (chosen.trim() === enable.tag ? '' : chosen));
        await refresh(trpc.policies.pathKey());
        setAsked(null);
      },
      onError: (error) => {
        if (isEditConflict(error)) void refresh(trpc.policies.pathKey());
      },
    }),
  );
  const details = useQuery(trpc.policies.group.queryOptions({ organization, group }));
  const stacks = useInfiniteQuery(
    trpc.policies.groupStacks.infiniteQueryOptions(
      { organization, group },
      { enabled: !isDefault, getNextPageParam: (page) => page.next },
    ),
  );
  const problem = useProblem(details);
  const stacksProblem = useProblem(stacks);
  const send = useMutation({
    mutationFn: async (_part: GroupChange) =>
      (await apiClient.access.declaration.query({ organization, kind: 'PolicyGroup', object: group })).declaration,
    onSuccess: (declaration, part) =>
      declaration === null ? change.mutate({ organization, group, ...part }) : setAsked(part),
    onError: (_error, part) => setAsked(part),
  });
  const isPending = send.isPending || change.isPending;
  const versions = new Map(details.data?.packs.map(({ name, versionTag }) => [name, versionTag]));
  return (
    <div className={styles['details']}>
      {asked === null ? null : (
        <ManagedDialog
          managed={{ organization, kind: 'PolicyGroup', object: group }}
          title={policyGroupDetailsTexts.changeGroup(group)}
          action={policyGroupDetailsTexts.changeTheGroup}
          error={change.error}
          isPending={change.isPending}
          onClose={() => setAsked(null)}
          onSubmit={() => change.mutate({ organization, group, ...asked })}
        />
      )}
      {change.error && asked === null ? (
        <p className={styles['error']} role="alert">
          {change.error.message}
        </p>
      ) : null}
      <section className={styles['part']}>
        <h3>{policyGroupDetailsTexts.packs}</h3>
        {problem ? (
          <PartProblem {...problem} />
        ) : details.data === undefined ? (
          <Skeleton width={180} />
        ) : details.data.packs.length === 0 ? (
          <p className={styles['none']}>{policyGroupDetailsTexts.noPacks}</p>
        ) : (
          <ul className={styles['list']}>
            {details.data.packs.map(({ config, displayName, name, versionTag }) => (
              <li key={name} className={styles['item']}>
                <span>
                  {displayName} <code>{versionTag}</code>
                  {Object.keys(config).length === 0 ? null : (
                    <span className={styles['minor']}> {policyGroupDetailsTexts.configured}</span>
                  )}
                </span>
                {mayManage ? (
                  <Button
                    size="small"
                    kind="quiet"
                    disabled={isPending}
                    aria-label={policyGroupDetailsTexts.disablePack(name, group)}
                    onClick={() => send.mutate({ disable: { pack: name, seen: versionTag } })}
                  >
                    {policyGroupDetailsTexts.disable}
                  </Button>
                ) : null}
              </li>
            ))}
          </ul>
        )}
        {mayManage && packs.length > 0 && details.data !== undefined ? (
          <EnableForm
            packs={packs}
            tag={tag}
            onTag={setTag}
            onMore={onMorePacks}
            isPending={isPending}
            // Another version of a pack keeps its configuration.
            onEnable={(enable) => send.mutate({ enable: { ...enable, seen: versions.get(enable.pack) ?? null } })}
          />
        ) : null}
      </section>
      <section className={styles['part']}>
        <h3>{policyGroupDetailsTexts.stacks}</h3>
        {isDefault ? (
          <p className={styles['none']}>{policyGroupDetailsTexts.allOtherStacks}</p>
        ) : (
          <>
            {stacksProblem ? <PartProblem {...stacksProblem} /> : null}
            <ul className={styles['list']}>
              {(stacks.data?.pages.flatMap(({ items }) => items) ?? []).map(({ project, stack }) => (
                <li key={`${project}/${stack}`} className={styles['item']}>
                  <Link to="/$organization/$project/$stack" params={{ organization, project, stack }}>
                    {project}/{stack}
                  </Link>
                  {mayManage ? (
                    <Button
                      size="icon"
                      kind="quiet"
                      disabled={isPending}
                      aria-label={policyGroupDetailsTexts.removeStack(project, stack, group)}
                      onClick={() => send.mutate({ removeStack: { project, stack } })}
                    >
                      <X size={14} />
                    </Button>
                  ) : null}
                </li>
              ))}
            </ul>
            {stacks.hasNextPage ? (
              <Button size="small" disabled={stacks.isFetchingNextPage} onClick={() => void stacks.fetchNextPage()}>
                {policyGroupDetailsTexts.showMore}
              </Button>
            ) : null}
            {mayManage ? (
              <StackForm
                organization={organization}
                text={text}
                onText={setText}
                isPending={isPending}
                onAdd={(addStack) => send.mutate({ addStack })}
              />
            ) : null}
          </>
        )}
      </section>
      {mayManage && !isDefault ? (
        <div>
          <Button size="small" kind="danger" onClick={() => setIsRemoving(true)}>
            {policyGroupDetailsTexts.removeTheGroup}
          </Button>
        </div>
      ) : null}
      {isRemoving ? (
        <RemoveGroupDialog organization={organization} group={group} onClose={() => setIsRemoving(false)} />
      ) : null}
    </div>
  );
}

function StackForm({
  isPending,
  onAdd,
  onText: setText,
  organization,
  text,
}: {
  readonly organization: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly isPending: boolean;
  readonly onAdd: (stack: { readonly project: string; readonly stack: string }) => void;
}) {
  const listId = useId();
  const searched = useDeferredValue(text.trim());
  const found = useQuery(
    trpc.stacks.list.queryOptions({ organization, text: searched, limit: 10 }, { enabled: searched.length > 1 }),
  );
  const [project = '', stack = '', ...rest] = text.trim().split('/');
  const isReady = project !== '' && stack !== '' && rest.length === 0;
  return (
    <>
      <form
        className={styles['form']}
        data-draft={text === '' ? undefined : ''}
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) onAdd({ project, stack });
        }}
      >
        <TextField
          label={policyGroupDetailsTexts.stack}
          placeholder={policyGroupDetailsTexts.stackPlaceholder}
          list={listId}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <datalist id={listId}>
          {found.data?.items.map((each) => (
            <option key={`${each.project}/${each.stack}`} value={`${each.project}/${each.stack}`} />
          ))}
        </datalist>
        <Button type="submit" disabled={isPending || !isReady}>
          {policyGroupDetailsTexts.add}
        </Button>
      </form>
      {text === '' ? null : <HaltNote className={styles['error']} />}
    </>
  );
}

function RemoveGroupDialog({
  group,
  onClose,
  organization,
}: {
  readonly organization: string;
  readonly group: string;
  readonly onClose: () => void;
}) {
  const remove = useMutation(
    trpc.policies.removeGroup.mutationOptions({
      onSuccess: async () => {
        await Promise.all([trpc.policies.groups, trpc.policies.packs].map((part) => refresh(part.pathKey())));
        onClose();
      },
    }),
  );
  return (
    <ManagedDialog
      managed={{ organization, kind: 'PolicyGroup', object: group }}
      title={policyGroupDetailsTexts.removeGroup(group)}
      description={policyGroupDetailsTexts.description}
      action={policyGroupDetailsTexts.remove}
      stay={policyGroupDetailsTexts.keepIt}
      isDanger
      isPending={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onSubmit={() => remove.mutate({ organization, group })}
    />
  );
}
