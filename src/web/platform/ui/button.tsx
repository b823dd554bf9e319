import type { ComponentProps } from 'react';
import styles from './button.module.css';

/** `main`: at most once on a page; `danger`: for actions that cannot be undone; `quiet`: beside content. */
type ButtonKind = 'main' | 'plain' | 'quiet' | 'danger';

interface ButtonProps extends ComponentProps<'button'> {
  readonly kind?: ButtonKind;
  readonly size?: 'normal' | 'small' | 'icon';
}

export function Button({ className, kind = 'plain', size = 'normal', type = 'button', ...rest }: ButtonProps) {
  return <button type={type} className={buttonClass({ kind, size, className })} {...rest} />;
}

/** Classes of a button, for links that look like one. */
export function buttonClass({
  className = '',
  kind = 'plain',
  size = 'normal',
}: Pick<ButtonProps, 'kind' | 'size'> & { readonly className?: string | undefined } = {}): string {
  return [styles['button'], styles[kind], styles[size], className].filter(Boolean).join(' ');
}
