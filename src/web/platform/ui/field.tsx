import { type ComponentProps, type ReactNode, useId } from 'react';
import styles from './field.module.css';

interface About {
  readonly label: ReactNode;
  /** About the value of the field, or its effect. */
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** The label is for screen readers only. */
  readonly isLabelUnseen?: boolean;
}

type Own<Tag extends 'input' | 'select' | 'textarea'> = About &
  Omit<ComponentProps<Tag>, 'id' | 'className' | 'aria-describedby'>;

export function TextField({ error, hint, isLabelUnseen = false, label, ...input }: Own<'input'>) {
  const ids = useIds();
  return (
    <Field {...{ ids, label, hint, error, isLabelUnseen }}>
      <input
        autoComplete="off"
        spellCheck={false}
        {...input}
        {...described(ids, hint, error)}
        className={styles['input']}
      />
    </Field>
  );
}

export function TextArea({ error, hint, isLabelUnseen = false, label, ...input }: Own<'textarea'>) {
  const ids = useIds();
  return (
    <Field {...{ ids, label, hint, error, isLabelUnseen }}>
      <textarea rows={3} {...input} {...described(ids, hint, error)} className={styles['area']} />
    </Field>
  );
}

/** `options` are values with their texts, in order. */
export function SelectField({
  error,
  hint,
  isLabelUnseen = false,
  label,
  options,
  ...input
}: Own<'select'> & { readonly options: readonly (readonly [value: string, text: string])[] }) {
  const ids = useIds();
  return (
    <Field {...{ ids, label, hint, error, isLabelUnseen }}>
      <select {...input} {...described(ids, hint, error)} className={styles['select']}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

export function CheckboxField({ error, hint, label, ...input }: Own<'input'>) {
  const ids = useIds();
  return (
    <div className={styles['check']}>
      <input type="checkbox" {...input} {...described(ids, hint, error)} />
      <label htmlFor={ids.inputId}>{label}</label>
      <Notes {...{ ids, hint, error }} />
    </div>
  );
}

interface Ids {
  readonly inputId: string;
  readonly hintId: string;
  readonly errorId: string;
}

function useIds(): Ids {
  const inputId = useId();
  return { inputId, hintId: `${inputId}hint`, errorId: `${inputId}error` };
}

function described(ids: Ids, hint: ReactNode, error: string | undefined) {
  const notes = [hint === undefined ? null : ids.hintId, error === undefined ? null : ids.errorId].filter(Boolean);
  return {
    id: ids.inputId,
    'aria-describedby': notes.length === 0 ? undefined : notes.join(' '),
    'aria-invalid': error === undefined ? undefined : true,
  };
}

function Field({
  children,
  error,
  hint,
  ids,
  isLabelUnseen,
  label,
}: About & { readonly ids: Ids; readonly children: ReactNode }) {
  return (
    <div className={styles['field']}>
      <label htmlFor={ids.inputId} className={isLabelUnseen ? 'unseen' : styles['label']}>
        {label}
      </label>
      {children}
      <Notes {...{ ids, hint, error }} />
    </div>
  );
}

function Notes({ error, hint, ids }: Pick<About, 'hint' | 'error'> & { readonly ids: Ids }) {
  return (
    <>
      {hint === undefined ? null : (
        <p id={ids.hintId} className={styles['hint']}>
          {hint}
        </p>
      )}
      {error === undefined ? null : (
        <p id={ids.errorId} className={styles['error']} role="alert">
          {error}
        </p>
      )}
    </>
  );
}
