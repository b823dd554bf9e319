import { useMutation } from '@tanstack/react-query';
import { Plus, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { StackRef } from '../app/contract.ts';
import { queryClient, trpc } from '../app/trpc.ts';
import { TagNameField, TagValueField } from '../organization/suggest-fields.tsx';
import { Button } from '../ui/button.tsx';
import styles from './stack-tags.module.css';

/** Tags that the CLI keeps itself. */
const ownPrefixes = ['pulumi:', 'gitHub:', 'vcs:'];

interface StackTagsProps {
  readonly stack: StackRef;
  readonly tags: Readonly<Record<string, string>>;
  readonly mayChange: boolean;
}

/** The tags of a stack, and a form for more if the user may add some. */
export function StackTags({ mayChange, stack, tags }: StackTagsProps) {
  const [isAdding, setIsAdding] = useState(false);
  const refresh = (): Promise<void> => queryClient.invalidateQueries({ queryKey: trpc.stacks.pathKey() });
  // After a refusal, too: somebody else has given it another value, which is then shown.
  const remove = useMutation(trpc.stacks.removeTag.mutationOptions({ onSettled: refresh }));
  const sorted = Object.entries(tags).sort(([one], [other]) => (one < other ? -1 : 1));
  return (
    <div className={styles['tags']}>
      {sorted.length === 0 && !isAdding ? <p className={styles['none']}>No tags.</p> : null}
      <ul className={styles['list']}>
        {sorted.map(([name, value]) => (
          <li key={name} className={styles['tag']}>
            <span className={styles['name']} title={name}>
              {name}
            </span>
            <span className={styles['value']} title={value}>
              {value}
            </span>
            {mayChange && !ownPrefixes.some((prefix) => name.startsWith(prefix)) ? (
              <button
                type="button"
                className={styles['remove']}
                aria-label={`Remove the tag ${name}`}
                disabled={remove.isPending}
                onClick={() => remove.mutate({ ...stack, name, value })}
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
        <Button size="small" kind="quiet" className={styles['add']} onClick={() => setIsAdding(true)}>
          <Plus size={14} aria-hidden="true" />
          Add a tag
        </Button>
      ) : null}
      {isAdding ? <TagForm stack={stack} onEnd={() => setIsAdding(false)} /> : null}
    </div>
  );
}

function TagForm({ onEnd, stack }: { readonly stack: StackRef; readonly onEnd: () => void }) {
  const { organization } = stack;
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const add = useMutation(
    trpc.stacks.setTag.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries({ queryKey: trpc.stacks.pathKey() });
        onEnd();
      },
    }),
  );
  return (
    <form
      className={styles['form']}
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() !== '') add.mutate({ ...stack, name: name.trim(), value });
      }}
    >
      <TagNameField
        {...{ organization, ref: first, label: 'Name of the tag', isLabelUnseen: true, placeholder: 'name' }}
        value={name}
        onChange={setName}
      />
      <TagValueField
        {...{ organization, tag: name.trim(), label: 'Value of the tag', isLabelUnseen: true, placeholder: 'value' }}
        value={value}
        onChange={setValue}
      />
      {add.error ? (
        <p className={styles['error']} role="alert">
          {add.error.message}
        </p>
      ) : null}
      <div className={styles['actions']}>
        <Button size="small" kind="main" type="submit" disabled={add.isPending || name.trim() === ''}>
          Add
        </Button>
        <Button size="small" onClick={onEnd}>
          Leave it
        </Button>
      </div>
    </form>
  );
}
