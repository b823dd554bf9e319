import { useMutation } from '@tanstack/react-query';
import { Plus, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { errorCode } from '../platform/app/api-error.ts';
import type { StackRef } from '../platform/app/procedure-types.ts';
import { TagNameField, TagValueField } from '../platform/app/suggest-fields.tsx';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { HaltNote } from '../platform/ui/halt-note.tsx';
import { stackTagTexts } from './stack/texts.tsx';
import styles from './stack-tags.module.css';

/** Tags that the CLI overwrites with each update. */
const ownPrefixes = ['pulumi:', 'gitHub:', 'vcs:'];
const isOwn = (name: string): boolean => ownPrefixes.some((prefix) => name.startsWith(prefix));

/**
 * Even after a refusal: another user has changed the value, and the new value is then shown. Nobody waits for it, because one slow read
 * would keep the form open.
 */
function readStacks(): void {
  void queryClient.invalidateQueries({ queryKey: trpc.stacks.pathKey() });
}

interface StackTagsProps {
  readonly stack: StackRef;
  readonly tags: Readonly<Record<string, string>>;
  readonly mayChange: boolean;
}

export function StackTags({ mayChange, stack, tags }: StackTagsProps) {
  const [isAdding, setIsAdding] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  /** The button of the tag that is being removed. */
  const removing = useRef<HTMLElement>(null);
  const passFocus = (next: HTMLElement | null | undefined): void => {
    if (document.activeElement === document.body) next?.focus({ preventScroll: true });
  };
  const findAdd = () => place.current?.querySelector<HTMLElement>('[data-add]');
  const endAdding = (): void => {
    flushSync(() => setIsAdding(false));
    passFocus(findAdd());
  };
  const remove = useMutation(trpc.stacks.removeTag.mutationOptions({ onSettled: readStacks }));
  useEffect(() => {
    const button = removing.current;
    // After the tag is removed, its button stays until the tags are reloaded.
    if (button === null || remove.isPending || (remove.isSuccess && button.isConnected)) return;
    removing.current = null;
    passFocus(button.isConnected ? button : findAdd());
  });
  const sorted = Object.entries(tags).sort(([one], [other]) => (one < other ? -1 : 1));
  return (
    <div ref={place} className={styles['tags']}>
      {sorted.length === 0 && !isAdding ? <p className={styles['none']}>{stackTagTexts.none}</p> : null}
      <ul className={styles['list']}>
        {sorted.map(([name, value]) => (
          <li key={name} className={styles['tag']}>
            <span className={styles['name']} title={name}>
              {name}
            </span>
            <span className={styles['value']} title={value}>
              {value}
            </span>
            {mayChange && !isOwn(name) ? (
              <button
                type="button"
                className={styles['remove']}
                aria-label={stackTagTexts.remove(name)}
                disabled={remove.isPending}
                onClick={({ currentTarget }) => {
                  removing.current = currentTarget;
                  remove.mutate({ ...stack, name, value });
                }}
              >
                <X size={13} />
              </button>
            ) : null}
          </li>
        ))}
      </ul>
      {remove.error ? (
        <p className={styles['error']} role="alert">
          {remove.error.message}
        </p>
      ) : null}
      {mayChange && !isAdding ? (
        <Button size="small" kind="quiet" className={styles['add']} data-add onClick={() => setIsAdding(true)}>
          <Plus size={14} aria-hidden="true" />
          {stackTagTexts.add}
        </Button>
      ) : null}
      {isAdding ? <TagForm stack={stack} tags={tags} onEnd={endAdding} /> : null}
    </div>
  );
}

interface TagFormProps extends Pick<StackTagsProps, 'stack' | 'tags'> {
  readonly onEnd: () => void;
}

function TagForm({ onEnd, stack, tags }: TagFormProps) {
  const { organization } = stack;
  const [typed, setName] = useState('');
  const name = typed.trim();
  const seen = Object.hasOwn(tags, name) ? (tags[name] as string) : null;
  const [value, setValue] = useState('');
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const add = useMutation(trpc.stacks.setTag.mutationOptions({ onSettled: readStacks }));
  const isComplete = name !== '' && !isOwn(name);
  return (
    <form
      className={styles['form']}
      data-draft={typed === '' && value === '' ? undefined : ''}
      onSubmit={(event) => {
        event.preventDefault();
        if (isComplete) add.mutate({ ...stack, name, seen, value }, { onSuccess: onEnd });
      }}
    >
      <TagNameField
        {...{
          organization,
          ref: first,
          label: stackTagTexts.name,
          isLabelUnseen: true,
          placeholder: stackTagTexts.nameExample,
        }}
        value={typed}
        onChange={setName}
      />
      <TagValueField
        {...{
          organization,
          tag: name,
          label: stackTagTexts.value,
          isLabelUnseen: true,
          placeholder: stackTagTexts.valueExample,
        }}
        value={value}
        onChange={setValue}
      />
      <p className={styles['note']} role="status">
        <TagNote name={name} seen={seen} />
      </p>
      <HaltNote className={styles['error']} />
      {add.error && errorCode(add.error) !== 'UNAUTHORIZED' ? (
        <p className={styles['error']} role="alert">
          {add.error.message}
        </p>
      ) : null}
      <div className={styles['actions']}>
        <Button size="small" kind="main" type="submit" disabled={add.isPending || !isComplete}>
          {seen === null ? stackTagTexts.addAction : stackTagTexts.replaceAction}
        </Button>
        <Button size="small" disabled={add.isPending} onClick={onEnd}>
          {stackTagTexts.cancel}
        </Button>
      </div>
    </form>
  );
}

/** Describes the effect of saving on an existing tag. */
function TagNote({ name, seen }: { readonly name: string; readonly seen: string | null }) {
  if (isOwn(name)) return stackTagTexts.setByCli;
  if (seen === null) return null;
  return stackTagTexts.replaces(<q>{seen}</q>);
}
